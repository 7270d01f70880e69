import { Injectable } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { RunningSandboxes, type RunningSandbox } from '../../sandboxes/running-sandboxes.js';
import { agentDialect, type AgentDialect } from '../agent-request/agent-dialect.js';
import type { StartTask } from '../start-task.entity.js';
import { SandboxReadiness } from './sandbox-readiness.js';

/** A sandbox that answers, for one step of a start. */
export interface StartTarget {
  /** As it is now. */
  task: StartTask;
  target: RunningSandbox;
  dialect: AgentDialect;
  /** Where conversations work, as its specification says; null when that is not configured any more. */
  specWorkingDir: string | null;
}

/** Finds the agent servers of starts; one that was stopped meanwhile is waited for. */
@Injectable()
export class StartTargets {
  constructor(
    private readonly running: RunningSandboxes,
    private readonly readiness: SandboxReadiness,
    private readonly specs: SandboxSpecs,
  ) {}

  /** @throws StartFailure, StartEnded, the signal's reason */
  async find(first: StartTask, signal: AbortSignal): Promise<StartTarget> {
    let task = first;
    for (;;) {
      const target = await this.running.target(task.sandboxId);
      if (target) {
        const spec = this.specs.find(target.specId);
        return { task, target, dialect: agentDialect(spec), specWorkingDir: spec?.workingDir ?? null };
      }
      task = await this.readiness.untilRunning(task, signal);
    }
  }
}
