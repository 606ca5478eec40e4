/** The sentences of codes, for applications that use a bundle: bundles have the codes only. */

/** Of `status().problem`, `status().state` or the `state` of a previewed report. */
export declare function explain(code: string): string;

/** What forget() did, and what it cost. */
export declare function explainForgotten(epsilon: number): string;
