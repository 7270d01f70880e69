import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { AgentDialect } from './agent-dialect.js';
import { OWN_DIALECT } from './own.dialect.js';
import { STOCK_DIALECT } from './stock.dialect.js';

export const AGENT_DIALECTS = { slipway: OWN_DIALECT, stock: STOCK_DIALECT };

/** Returns the stock dialect, which all agent servers understand, when the specification is unknown. */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? AGENT_DIALECTS.slipway : AGENT_DIALECTS.stock;
}
