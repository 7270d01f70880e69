import type { SandboxSpec } from '../../sandbox-specs/sandbox-spec.js';

/**
 * Which agent server is inside a sandbox: ours, which takes members and has routes that the published schema lacks, or
 * one that is told no more than the schema knows.
 */
export type AgentDialect = 'slipway' | 'stock';

/** @param spec null when it is not configured any more */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? 'slipway' : 'stock';
}
