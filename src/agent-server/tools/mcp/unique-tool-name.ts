const MAX_LENGTH = 64;

/**
 * Name under which a tool server's tool is offered: its own, as far as models' APIs accept it, with the server's name
 * before it when another tool has it already.
 */
export function uniqueToolName(server: string, tool: string, taken: ReadonlySet<string>): string {
  const plain = cleanName(tool);
  if (!taken.has(plain)) {
    return plain;
  }
  const full = cleanName(`${server}_${tool}`);
  let name = full;
  for (let count = 2; taken.has(name); count += 1) {
    name = `${full.slice(0, MAX_LENGTH - 4)}_${count}`;
  }
  return name;
}

function cleanName(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_LENGTH) || 'tool';
}
