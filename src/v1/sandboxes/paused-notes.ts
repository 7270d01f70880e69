/** Says for people which idle sandboxes gave up their places to another one; nothing when none did. */
export function pausedNotes(ids: readonly string[]): string[] {
  const [first, ...others] = ids;
  if (first === undefined) {
    return [];
  }
  return others.length === 0
    ? [`Sandbox ${first} was idle for longest, and was paused to make room.`]
    : [`Sandboxes ${[first, ...others].join(', ')} were idle for longest, and were paused to make room.`];
}
