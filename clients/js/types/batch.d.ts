/** Batches as bytes, for programs that send what an encoder makes. */

import type { Report } from "./encoder.js";

export interface Batch {
  token: Uint8Array;
  collection: string;
  version: number;
  period: string;
  dimensions: readonly (readonly [string, string])[];
  k: number;
  reports: Report[];
}

/** The bytes of a batch, or a RapporError of code "wire". */
export declare function writeBatchStrictly(batch: Batch): Uint8Array;

/** The batch in some bytes, or a RapporError of code "wire". */
export declare function readBatchStrictly(data: Uint8Array): Batch;
