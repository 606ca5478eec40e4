/** Periods: the UTC day or ISO week of a report. A day is a number, counted from 1970-01-01. */

const DAY = 864e5; // milliseconds

/**
 * The UTC day of a time in milliseconds; any number is accepted, since clocks can be wrong.
 * @param {number} time
 * @returns {number}
 */
export const dayOf = (time) => (time > 0 ? Math.floor(Math.min(time, 2.5e14) / DAY) : 0);

/**
 * A day as ISO 8601 writes it.
 * @param {number} day
 * @returns {string}
 */
export const dayText = (day) => new Date(day * DAY).toISOString().slice(0, 10);

/**
 * The Monday of the first week of a year: the one with 4 January in it. 1970-01-01 was a Thursday.
 * @param {number} year
 */
function firstMonday(year) {
  const day = Date.UTC(year, 0, 4) / DAY;
  return day - ((((day + 3) % 7) + 7) % 7);
}

/**
 * The period of a day.
 * @param {string} kind "day" or "week"
 * @param {number} day
 * @returns {string}
 */
export function periodOf(kind, day) {
  if (kind === "day") return dayText(day);
  const monday = day - ((day + 3) % 7);
  const year = new Date((monday + 3) * DAY).getUTCFullYear(); // of the week's Thursday
  const week = (monday - firstMonday(year)) / 7 + 1;
  return `${year}-W${String(week).padStart(2, "0")}`;
}

/**
 * The first and the last day of a period of either kind; null if there is no such period.
 * @param {unknown} period
 * @returns {[number, number] | null}
 */
export function daysOf(period) {
  const text = String(period);
  const found = /^(\d{4})-W(\d\d)$/.exec(text);
  const kind = found ? "week" : "day";
  const first = found
    ? firstMonday(+found[1]) + 7 * (+found[2] - 1)
    : /^\d{4}-\d\d-\d\d$/.test(text)
      ? Date.parse(text) / DAY
      : NaN;
  if (!(first >= -719162) || periodOf(kind, first) !== text) return null;
  return [first, found ? first + 6 : first];
}

/**
 * The last day of a period.
 * @param {string} period
 * @returns {number}
 */
export const endOf = (period) => daysOf(period)?.[1] ?? 0;

/**
 * The first day of a period.
 * @param {string} period
 * @returns {number}
 */
export const startOf = (period) => daysOf(period)?.[0] ?? 0;

/**
 * Periods in the order in which they end; days and weeks may be mixed.
 * @param {string[]} periods
 * @returns {string[]}
 */
export const inOrder = (periods) => [...periods].sort((one, other) => endOf(one) - endOf(other));
