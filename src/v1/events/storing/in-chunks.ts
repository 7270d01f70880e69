/** Cuts a list into runs whose sizes add up to at most `most`; an element that is larger stands alone. */
export function inChunks<T>(elements: readonly T[], sizeOf: (element: T) => number, most: number): T[][] {
  const chunks: T[][] = [];
  let size = Infinity;
  for (const element of elements) {
    const added = sizeOf(element);
    const last = chunks.at(-1);
    if (last === undefined || size + added > most) {
      chunks.push([element]);
      size = added;
    } else {
      last.push(element);
      size += added;
    }
  }
  return chunks;
}
