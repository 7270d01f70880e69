import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import { AgentServerGit } from '../../agent-servers/agent-server.git.js';
import { AgentServerHttp } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/agent-server-target.js';
import type { AgentDialect } from '../agent-request/agent-dialect.js';
import { StartFailure } from '../start/start-failure.js';
import { cloneScript } from './clone-script.js';
import { failureOfOutput } from './failure-of-output.js';
import { preparationFailure } from './preparation-failure.js';
import type { RepositoryPlan } from './repository-plan.js';

const CLONE_SECONDS = 600;

/** Makes repositories inside of sandboxes; credentials reach no address, argument, configuration or log. */
@Injectable()
export class RepositoryMaker {
  constructor(
    private readonly git: AgentServerGit,
    private readonly commands: AgentServerCommands,
    private readonly http: AgentServerHttp,
  ) {}

  /**
   * Makes the repository, unless it is there.
   *
   * @throws StartFailure with the last output
   */
  async make(
    target: AgentServerTarget,
    dialect: AgentDialect,
    plan: RepositoryPlan,
    signal: AbortSignal,
  ): Promise<void> {
    const { ok, failure, output } =
      dialect === 'slipway'
        ? await this.byRoute(target, plan, signal)
        : await this.byCommands(target, plan, signal);
    if (!ok) {
      throw new StartFailure(preparationFailure(plan, failure ?? 'failed', output));
    }
  }

  private async byRoute(
    target: AgentServerTarget,
    plan: RepositoryPlan,
    signal: AbortSignal,
  ): ReturnType<AgentServerGit['prepare']> {
    return this.git.prepare(
      target,
      {
        url: plan.url,
        directory: plan.folder,
        branch: plan.branch,
        new_branch: plan.newBranch,
        username: plan.credential?.username ?? null,
        password: plan.credential?.password ?? null,
        identity: plan.identity,
        timeout: CLONE_SECONDS,
      },
      signal,
    );
  }

  private async byCommands(
    target: AgentServerTarget,
    plan: RepositoryPlan,
    signal: AbortSignal,
  ): Promise<Pick<Awaited<ReturnType<AgentServerGit['prepare']>>, 'ok' | 'failure' | 'output'>> {
    const secretFile = plan.credential ? `/tmp/slipway-${randomUUID()}` : null;
    if (plan.credential && secretFile !== null) {
      // A command's text is kept by the server; this file is gone before git starts.
      const { username, password } = plan.credential;
      await this.http.upload(target, secretFile, `${username}\n${password}\n`, signal);
    }
    const { exitCode, output } = await this.commands.run(target, {
      command: cloneScript(plan, secretFile),
      cwd: null,
      timeoutSeconds: CLONE_SECONDS,
      signal,
    });
    return { ok: exitCode === 0, failure: exitCode === 0 ? null : failureOfOutput(output), output };
  }
}
