import { expect, it } from '@jest/globals';
import type { ConfirmationPolicy } from '../../agent-protocol/conversation-api.js';
import { toConfirmationPolicy } from './engine-settings.js';

const risky = (threshold: 'LOW' | 'HIGH' = 'HIGH', confirm_unknown = true): ConfirmationPolicy => ({
  kind: 'ConfirmRisky',
  threshold,
  confirm_unknown,
});
const LLM = { kind: 'LLMSecurityAnalyzer' };

it.each([
  [{ kind: 'NeverConfirm' }, null, 'never'],
  [{ kind: 'NeverConfirm' }, LLM, 'never'],
  [{ kind: 'AlwaysConfirm' }, null, 'always'],
  [risky(), LLM, 'risky'],
  [risky('LOW'), LLM, 'always'],
  [risky(), null, 'always'],
  [risky('HIGH', false), null, 'never'],
] as const)('%j with analyzer %j: %s', (confirmationPolicy, securityAnalyzer, expected) => {
  expect(toConfirmationPolicy({ confirmationPolicy, securityAnalyzer })).toBe(expected);
});
