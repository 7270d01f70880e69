/** How long connections and timers that are still open keep a process that is done. */
const GRACE_MS = 250;

/**
 * Ends this process with `status` as soon as nothing keeps it, after a quarter of a second at the latest. process.exit() alone
 * joins the threads of V8, and one that compiles may wait there for a garbage collection that the caller can no longer make:
 * the process then never ends (https://github.com/nodejs/node/issues/54918). None compiles in a process that has nothing to do.
 */
export function exitProcess(status = 0): void {
  process.exitCode = status;
  // oxlint-disable-next-line no-restricted-properties
  setTimeout(() => process.exit(status), GRACE_MS).unref();
}
