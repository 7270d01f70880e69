import { withoutTerminalCodes } from '@slipway/common/terminal-text.js';
import { textTail } from '@slipway/common/well-formed-text.js';

/** Classes of failures that operators can act on. */
export const START_FAILURE_KINDS = [
  /** A missing model or key, for example. */
  'settings',
  /** No sandbox of the user became free in time, or none may be paused. */
  'quota',
  /** It could not be started, ended, or was removed meanwhile. */
  'sandbox',
  'repository',
  /** The repository's own setup script or hook failed. */
  'setup',
  'agent_server',
  /** Every attempt failed for a reason that might have passed. */
  'attempts',
  /** No process of the sandbox's host runs any more. */
  'host_lost',
] as const;
export type StartFailureKind = (typeof START_FAILURE_KINDS)[number];

/** Another attempt cannot succeed. The message tells the user what happened and what to do; never a secret. */
export class StartFailure extends Error {
  constructor(
    readonly kind: StartFailureKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'StartFailure';
  }
}

const MAX_LINES = 20;
const MAX_CHARACTERS = 2_000;

export function tailOf(output: string): string {
  // PostgreSQL stores no NUL, and a detail has no colours.
  const plain = withoutTerminalCodes(output).replaceAll('\0', '');
  return textTail(plain.trimEnd().split('\n').slice(-MAX_LINES).join('\n'), MAX_CHARACTERS);
}
