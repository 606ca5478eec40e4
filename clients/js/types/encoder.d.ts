/** Encoder: value -> report, without storage and network. */

export type Kind = "string" | "category" | "boolean" | "ordinal" | "bits" | "tuple";

/** One field of kind tuple. */
export interface Field {
  name: string;
  kind: "string" | "category" | "boolean" | "ordinal";
  categories?: readonly string[] | null;
  edges?: readonly (number | bigint | string)[] | null;
}

/** Fields that are reported together, and by how many cohorts: the first view has the first cohorts. */
export interface View {
  fields: readonly string[];
  cohorts: number;
}

export interface Params {
  k: number;
  h: number;
  m: number;
  f: number;
  p: number;
  q: number;
}

/** Bits are packed: bit i is bit i % 8 of byte i >> 3. */
export interface Report {
  cohort: number;
  bits: Uint8Array;
}

export type Place = (value: Uint8Array) => number[];
export type Dialects = Record<string, (cohort: number, params: Params) => Place>;

export interface EncoderOptions {
  params: Params;
  /** Drawn once with newSecret() and kept. */
  secret: Uint8Array;
  collection: string;
  kind?: Kind;
  dialect?: string;
  categories?: readonly string[] | null;
  /** Of kind ordinal, increasing: numbers, or texts such as "-1/2". */
  edges?: readonly (number | bigint | string)[] | null;
  /** Of kind tuple: two to four. A value is an object with a property for each. */
  fields?: readonly Field[] | null;
  /** Of kind tuple: the cohorts of all views add up to m. */
  views?: readonly View[] | null;
  cohort?: number;
  /** In budget mode the calendar period, which has its own B'. */
  period?: string | null;
  /** Gives that many random bytes; by default the platform's generator. */
  entropy?: (count: number) => Uint8Array;
  dialects?: Dialects;
}

export interface Encoder {
  readonly cohort: number;
  readonly memoDigest: string;
  encode(value: unknown): Report;
  encodeNull(): Report;
  /** Signal and permanent response are what the mechanism hides: never send or store them. */
  trace(value: unknown): { signal: Uint8Array; permanent: Uint8Array; report: Report };
}

export declare function createEncoder(options: EncoderOptions): Promise<Encoder>;
export declare function newSecret(): Uint8Array;

/** `code`: "params", "value", "entropy", "wire" or "stopped". */
export declare class RapporError extends Error {
  code: string;
  /** Of a refused definition: its code and the field (docs/clients.md). */
  definitionCode?: string;
  path?: string;
}
