/** Milliseconds of processor time that the work takes: unlike the wall clock, no other program of a busy machine delays it. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
