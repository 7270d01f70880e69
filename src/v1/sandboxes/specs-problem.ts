import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';

/** What of the operator's specifications processes cannot have, in one line for the log; null when that is nothing. */
export function specsProblem(specs: readonly SandboxSpec[], backend: 'process' | 'docker'): string | null {
  const unmet = backend === 'process' ? specs.filter(asksForMore) : [];
  return unmet.length === 0
    ? null
    : `process sandboxes have no limits, runtime or network of their own: what SANDBOX_SPECS_FILE says of these has no effect for ${unmet.map(({ id }) => id).join(', ')}`;
}

/** Images are refused anyway, by name, when one is started. */
function asksForMore({ program, cpu, memoryMb, runtime, network }: SandboxSpec): boolean {
  return program.kind !== 'image' && [cpu, memoryMb, runtime, network].some((wish) => wish !== null);
}
