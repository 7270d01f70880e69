import type { EngineSettings } from '../agent-engine.js';
import type { PermissionOutcome } from './acp-connection.js';
import type { PermissionOption } from './acp-schemas.js';

/** Kinds of tools that change nothing. As with risks that a model states, the agent's own word is all there is. */
const HARMLESS_KINDS = new Set(['read', 'search', 'think']);

/** Whether the user is asked, or the call is allowed at once. */
export function mustAsk(policy: EngineSettings['confirmationPolicy'], toolKind: string | null): boolean {
  return policy === 'always' || (policy === 'risky' && !HARMLESS_KINDS.has(toolKind ?? ''));
}

/**
 * The option that says yes or no to this one call. An option for good is only chosen where there is no other: the next
 * call may be another matter. Without any the agent is told that nobody chose.
 */
export function choose(options: readonly PermissionOption[], accept: boolean): PermissionOutcome {
  const kinds = accept ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind));
  const [first] = found;
  return first === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: first.optionId };
}
