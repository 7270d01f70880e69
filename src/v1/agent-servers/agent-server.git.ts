import { Injectable } from '@nestjs/common';
import type {
  GitPrepareResponse,
  GitPrepareFailure,
  GitPrepareRequest,
  GitPushRequest,
  GitPushResponse,
} from '@slipway/agent-protocol/git.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { AgentServerError, AgentServerHttp, unlessStatus } from './agent-server.http.js';
import type { AgentServerTarget } from './sandbox-address.js';

const FAILURES: readonly GitPrepareFailure[] = [
  'authentication',
  'repository_not_found',
  'branch_not_found',
  'unreachable',
  'directory_not_empty',
  'no_space',
  'timeout',
  'failed',
];
const PUSH_TIMEOUT_MS = 150_000;
const DEFAULT_TIMEOUT_SECONDS = 600;
const GRACE_SECONDS = 20;

/** Lets our own agent server work with git: credentials pass only through its memory. */
@Injectable()
export class AgentServerGit {
  constructor(private readonly http: AgentServerHttp) {}

  /** Prepares a folder as a repository to work in; repeatable. Throws AgentServerError when no result is reported. */
  async prepare(
    target: AgentServerTarget,
    body: GitPrepareRequest,
    signal: AbortSignal,
  ): Promise<GitPrepareResponse> {
    const response = await this.http.json(target, '/api/git/prepare', {
      method: 'POST',
      body,
      timeoutMs: ((body.timeout ?? DEFAULT_TIMEOUT_SECONDS) + GRACE_SECONDS) * 1000,
      signal,
    });
    const ok = jsonAt(response, 'ok');
    if (typeof ok !== 'boolean') {
      throw new AgentServerError(null, 'its response did not say whether git succeeded');
    }
    const failure = FAILURES.find((known) => known === jsonText(response, 'failure')) ?? 'failed';
    return {
      ok,
      failure: ok ? null : failure,
      output: jsonText(response, 'output') ?? '',
      head: jsonText(response, 'head'),
      branch: jsonText(response, 'branch'),
      notices: jsonList(response, 'notices').filter((notice) => typeof notice === 'string'),
    };
  }

  /** Null from an agent server that cannot: the stock one. Throws AgentServerError when no result is reported. */
  async push(target: AgentServerTarget, body: GitPushRequest): Promise<GitPushResponse | null> {
    const call = { method: 'POST', body, timeoutMs: PUSH_TIMEOUT_MS } as const;
    const answer = this.http.json(target, '/api/git/push', call).then((response) => ({
      ok: jsonAt(response, 'ok') === true,
      branch: jsonText(response, 'branch'),
      output: jsonText(response, 'output') ?? '',
    }));
    return await unlessStatus([404, 405], answer);
  }
}
