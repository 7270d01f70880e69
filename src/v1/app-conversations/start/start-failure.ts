import { stripVTControlCharacters } from 'node:util';
import { textTail } from '@slipway/common/well-formed-text.js';

/** Why starts fail, in classes that operators can act on. */
export const START_FAILURE_KINDS = [
  /** The user's settings do not suffice, such as a missing model or key. */
  'settings',
  /** No sandbox of the user became free in time, or none may be paused. */
  'quota',
  /** The sandbox could not be started, ended, or was removed meanwhile. */
  'sandbox',
  /** A clone or checkout failed. */
  'repository',
  /** The repository's own setup script or hook failed. */
  'setup',
  /** The agent server refused the conversation. */
  'agent_server',
  /** Every attempt failed for a reason that might have passed. */
  'attempts',
  /** No process of the sandbox's host runs any more. */
  'host_lost',
] as const;
export type StartFailureKind = (typeof START_FAILURE_KINDS)[number];

/**
 * A start that cannot succeed as it was requested. The message is for the user: what happened, and what to do. Never a
 * secret.
 */
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

/** The last lines of a command's output, for people. */
export function tailOf(output: string): string {
  // PostgreSQL stores no NUL, and a detail has no colours.
  const plain = stripVTControlCharacters(output).replaceAll('\0', '');
  return textTail(plain.trimEnd().split('\n').slice(-MAX_LINES).join('\n'), MAX_CHARACTERS);
}
