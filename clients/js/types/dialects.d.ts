import type { Dialects } from "./encoder.js";

export declare const dialects: Dialects;
