import { stripVTControlCharacters } from 'node:util';
import { textTail } from '@slipway/common/well-formed-text.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import type { AgentDialect } from '../agent-request/agent-dialect.js';
import type { KeyUse } from '../outside-credentials/concealer.js';
import type { StartTask } from '../start-task.entity.js';

/** What a step in the sandbox works with. */
export interface StartContext {
  task: StartTask;
  sandbox: RunningSandbox;
  dialect: AgentDialect;
  /** The specification's folder; null when it is not configured any more. */
  specWorkingDir: string | null;
}

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

/** Whose keys it is given. @param agent of the settings */
export function keyUse(
  { task, dialect }: Pick<StartContext, 'task' | 'dialect'>,
  agent: string | null,
): KeyUse {
  const { agent: named, llm_profile: profile = null, llm_model: model } = task.request;
  return {
    agent: named ?? agent,
    profile,
    model,
    ...(!dialect.hasExtensions && { stock: true as const }),
  };
}

const MAX_LINES = 20;
const MAX_CHARACTERS = 2_000;

export function tailOf(output: string): string {
  // PostgreSQL stores no NUL, and a detail has no colours.
  const plain = stripVTControlCharacters(output).replaceAll('\0', '');
  return textTail(plain.trimEnd().split('\n').slice(-MAX_LINES).join('\n'), MAX_CHARACTERS);
}
