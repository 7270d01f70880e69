import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { AgentDialect } from './agent-dialect.js';
import { SlipwayDialect } from './slipway.dialect.js';
import { StockDialect } from './stock.dialect.js';

export const AGENT_DIALECTS = { slipway: new SlipwayDialect(), stock: new StockDialect() };

/** Null for an unknown specification: the dialect that all agent servers understand. */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? AGENT_DIALECTS.slipway : AGENT_DIALECTS.stock;
}
