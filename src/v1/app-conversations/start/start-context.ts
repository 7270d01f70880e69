import { Injectable } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { type RunningSandbox, RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import type { AgentDialect } from '../agent-request/agent-dialect.js';
import { agentDialect } from '../agent-request/agent-dialects.js';
import type { StartTask } from '../start-task.entity.js';
import { AwaitSandboxStep } from './await-sandbox.step.js';

export interface StartContext {
  task: StartTask;
  sandbox: RunningSandbox;
  dialect: AgentDialect;
  /** Null when the specification is not configured any more. */
  specWorkingDir: string | null;
}

/** Reads the context of a step; waits for a sandbox that was stopped meanwhile. */
@Injectable()
export class StartContextReader {
  constructor(
    private readonly running: RunningSandboxQueries,
    private readonly awaitSandbox: AwaitSandboxStep,
    private readonly specs: SandboxSpecs,
  ) {}

  /** @throws StartFailure, StartSuperseded, the signal's reason */
  async read(first: StartTask, signal: AbortSignal): Promise<StartContext> {
    let task = first;
    for (;;) {
      const sandbox = await this.running.target(task.sandboxId);
      if (sandbox) {
        const spec = this.specs.find(sandbox.specId);
        return { task, sandbox, dialect: agentDialect(spec), specWorkingDir: spec?.workingDir ?? null };
      }
      task = await this.awaitSandbox.run(task, signal);
    }
  }
}
