import { Injectable } from '@nestjs/common';
import type { GitPrepareAnswer, GitPrepareFailure, GitPrepareRequest } from '../../agent-protocol/git.js';
import { jsonAt, jsonText } from '../../common/json-access.js';
import { AgentServerError, AgentServerHttp, type AgentServerTarget } from './agent-server.http.js';

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
const DEFAULT_TIMEOUT_SECONDS = 600;
/** The answer comes some time after git was ended. */
const PATIENCE_SECONDS = 20;

/** Has our own agent server work with git: credentials pass through its memory only. */
@Injectable()
export class AgentServerGit {
  constructor(private readonly http: AgentServerHttp) {}

  /**
   * Makes a folder a repository that can be worked in; repeatable.
   *
   * @throws AgentServerError when the server does not say how it went
   */
  async prepare(
    target: AgentServerTarget,
    body: GitPrepareRequest,
    signal: AbortSignal,
  ): Promise<GitPrepareAnswer> {
    const answer = await this.http.json(target, '/api/git/prepare', {
      method: 'POST',
      body,
      timeoutMs: ((body.timeout ?? DEFAULT_TIMEOUT_SECONDS) + PATIENCE_SECONDS) * 1000,
      signal,
    });
    const ok = jsonAt(answer, 'ok');
    if (typeof ok !== 'boolean') {
      throw new AgentServerError(null, 'its answer was not one about a repository');
    }
    const failure = FAILURES.find((known) => known === jsonText(answer, 'failure')) ?? 'failed';
    return {
      ok,
      failure: ok ? null : failure,
      output: jsonText(answer, 'output') ?? '',
      head: jsonText(answer, 'head'),
      branch: jsonText(answer, 'branch'),
    };
  }
}
