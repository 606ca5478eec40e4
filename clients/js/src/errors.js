/**
 * The one error that this package throws on purpose. `code` says what was wrong; the message never
 * holds a secret, nor a value that a person reported.
 */

/** @typedef {"params" | "value" | "entropy" | "wire" | "stopped"} ErrorCode */

/**
 * A sentence for people. The bundles of a release leave these out (tools/build.js): they have codes only.
 * @param {TemplateStringsArray} strings
 * @param {...unknown} values
 */
export const sentence = (strings, ...values) => String.raw({ raw: strings }, ...values);

export class RapporError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} [message]
   */
  constructor(code, message) {
    super(message);
    this.name = "RapporError";
    /** @type {ErrorCode} */
    this.code = code;
  }
}

/**
 * Throw an error of code "params" unless an argument is right.
 * @param {unknown} holds
 * @param {string} message
 * @returns {asserts holds}
 */
export function checkArgument(holds, message) {
  if (!holds) throw new RapporError("params", message);
}

/**
 * Throw an error of code "value" unless a reported value is right.
 * @param {unknown} holds
 * @param {string} message
 * @returns {asserts holds}
 */
export function checkValue(holds, message) {
  if (!holds) throw new RapporError("value", message);
}
