/** The client of browsers and Node.js; docs/client-js.md tells more. */

import type { Dialects, Encoder, EncoderOptions, Field, Kind, Params, View } from "./encoder.js";

export { createEncoder, newSecret, RapporError } from "./encoder.js";
export type { Dialects, Encoder, EncoderOptions, Field, Kind, Params, View };

/** What `rappor collection export NAME.toml --format json` writes. */
export interface Definition {
  format: "rappor-collection-v1";
  name: string;
  version: number;
  kind: Kind;
  params: Params;
  description: string;
  dialect: string;
  period: "day" | "week";
  dimensions: Record<string, string[]>;
  reports_per_period: number;
  max_values: number;
  max_epsilon: number;
  null_reports: boolean;
  one_time: boolean;
  budget: boolean;
  schedule: { from: string; p: number; q: number }[];
  clients_per_person: number;
  categories?: string[];
  ranges?: { edges: string[] };
  fields?: { name: string; kind: Field["kind"]; categories?: string[]; ranges?: { edges: string[] } }[];
  views?: { fields: string[]; cohorts: number }[];
  group?: string;
  expires?: string;
}

/** What a collector answered: only 204 means that the batch is stored. */
export interface Answer {
  status: number;
  /** The code of the problem document, if there is one. */
  code?: string;
  /** Whether the same batch may be accepted later. */
  retry?: boolean;
  /** Seconds that the collector asks the client to wait. */
  after?: number;
}

export interface ClientOptions {
  /** Definitions, parsed or as text; their names are distinct. */
  collections: (Definition | string | object)[];
  /** Whether the person agreed. Without it nothing is recorded or sent. */
  consent: boolean;
  /** The collector's address; without it reports stay in the outbox. */
  uploadTo?: string;
  /** Values of the declared dimensions; sent in clear. */
  dimensions?: Record<string, string>;
  /** The collector's public key for this application. */
  ingestKey?: string;
  /** At least 16 random bytes that the devices of an account share. */
  accountSecret?: Uint8Array;
  /** The largest ε over all collections together. */
  maxEpsilon?: number;
  /** How many batches may wait; beyond that the oldest are dropped. */
  outboxLimit?: number;
  /** Each report is sent at a random moment within this many seconds. */
  jitter?: number;
  /** In browsers: the name of the database, one for each person. */
  name?: string;
  /** In Node.js: the folder of secret, ledger and outbox, one for each person. */
  directory?: string;
  /** Dialects of other clients, from rappor/dialects. */
  dialects?: Dialects;
  /** For tests: the time in milliseconds, as Date.now. */
  now?: () => number;
  /** For tests: sends one batch. */
  transport?: (body: Uint8Array, signal: AbortSignal) => Promise<Answer>;
}

export interface CollectionStatus {
  name: string;
  version: number;
  /** The current one. */
  period: string;
  /** Made in the current period. */
  reports: number;
  /** Distinct values reported so far, and their limit. */
  values: number;
  maxValues: number;
  /** Charged so far, rounded up. */
  epsilon: number;
  epsilonGroup: number | null;
  maxEpsilon: number;
  state: "on" | "made" | "values at the limit" | "expired";
  /** What is sent in place of further values. */
  atLimit: "null reports" | "silence";
}

export interface Status {
  state: "on" | "no consent" | "do not track" | "opted out" | "stopped" | "forgotten" | "closed";
  /** A stable code, if something is wrong. */
  problem: string | null;
  /** A sentence; in the bundle of a release the code (rappor/messages has the sentences). */
  explanation: string;
  collections: CollectionStatus[];
  /** Over all collections, past ones included; rounded up. */
  epsilon: number;
  /** The outcomes of calls to report() in this tab, worker or process. */
  calls: Record<string, number>;
  /** Batches in the outbox. */
  waiting: number;
  /** The outcomes of batches, over all tabs and processes. */
  batches: Record<string, number>;
  waitingReports: {
    collection: string;
    reports: number;
    since: string;
    until: string;
    reason: string | null;
  }[];
  /** Why the last upload failed: a code, an HTTP status or a sentence. */
  upload: string | null;
  /** Seconds until the next attempt after a failed upload. */
  nextAttempt: number;
}

export interface PreviewedReport {
  /** A sentence, as `explanation` of the status. */
  state: string;
  collection: string;
  version: number;
  period: string;
  /** Sent in clear, outside ε. */
  dimensions: Record<string, string>;
  cohort: number;
  /** Bit k-1 first. */
  bits: string;
  token: string;
  /** All bytes of the request's body, in hex. */
  body: string;
}

export interface Preview {
  uploadTo: string | null;
  /** Those that the client sets; the platform adds its own. */
  headers: Record<string, string>;
  sent: PreviewedReport[];
  waiting: PreviewedReport[];
  next: {
    collection: string;
    version: number;
    description: string;
    dimensions: Record<string, string>;
    bits: number;
    maxReports: number;
    period: string;
    epsilonOne: number;
    maxEpsilon: number;
  }[];
}

export interface Forgotten {
  /** What was spent with the old secrets, rounded up; it stays spent. */
  epsilon: number;
  text: string;
}

export interface Client {
  /** Report a value. Returns at once and never throws. */
  report(collection: string, value: unknown): void;
  status(): Promise<Status>;
  /** Exactly what was sent and what will be sent, to show to the person. */
  preview(): Promise<Preview>;
  /** Record all calls and send what is due; false if that took longer (ms). */
  flush(timeout?: number): Promise<boolean>;
  /**
   * Stop at once and clear the outbox; the secret stays. True: nothing recorded before is sent any more, but
   * for a request of a tab that was closed in the middle of it.
   */
  optOut(): Promise<boolean>;
  /** Report again, from now on; false if that is not possible. */
  optIn(): Promise<boolean>;
  /** Delete secret, ledger and reports, and say what that costs; the client ends. */
  forget(): Promise<Forgotten>;
  /** Record all calls, send what is due, and stop; false if that took longer (ms). */
  close(timeout?: number): Promise<boolean>;
}

export declare const Client: {
  /** Open a client's storage. Rejects only if an argument is wrong: all else is in status(). */
  open(options: ClientOptions): Promise<Client>;
};
