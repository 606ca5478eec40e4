/**
 * The one error that this package throws on purpose. `code` says what was wrong; the message never
 * holds a secret, nor a value that a person reported.
 */

/** @typedef {"params" | "value" | "entropy" | "wire" | "stopped"} ErrorCode */

/**
 * A sentence for people. The bundle of a release leaves these out (tools/build.js): it has codes only.
 * @param {TemplateStringsArray} strings
 * @param {...unknown} values
 */
export const sentence = (strings, ...values) => String.raw({ raw: strings }, ...values);

export class RapporError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.name = "RapporError";
    /** @type {ErrorCode} */
    this.code = code;
  }
}

/**
 * @param {string} message
 * @returns {RapporError}
 */
export const paramsError = (message) => new RapporError("params", message);
