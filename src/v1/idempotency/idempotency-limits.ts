/** How long a key stands for its request, milliseconds. */
export const KEPT_MS = 24 * 3_600_000;
