import { Injectable } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { agentDialect } from '../agent-request/agent-dialect.js';
import { AgentRequests } from '../agent-request/agent-requests.js';
import type { StartTask } from '../start-task.entity.js';
import { SandboxSteps } from './sandbox-steps.js';
import { SandboxReadiness } from './sandbox-readiness.js';
import { StartFailure } from './start-failure.js';
import { StartTaskStore } from './start-task.store.js';

/** The way of a start: what is done in each status before the next one. Each step can be repeated. */
@Injectable()
export class StartSteps {
  constructor(
    private readonly tasks: StartTaskStore,
    private readonly requests: AgentRequests,
    private readonly specs: SandboxSpecs,
    private readonly readiness: SandboxReadiness,
    private readonly inSandbox: SandboxSteps,
  ) {}

  /**
   * Does what the task's status asks for.
   *
   * @returns the task in its next status
   * @throws StartFailure when the start cannot succeed
   * @throws StartEnded when it is in other hands; the signal's reason; anything else when it may succeed another time
   */
  async next(task: StartTask, signal: AbortSignal): Promise<StartTask> {
    switch (task.status) {
      case 'WORKING':
        await this.judgeSettings(task);
        return this.tasks.advance(task, 'WAITING_FOR_SANDBOX', { detail: task.detail });
      case 'WAITING_FOR_SANDBOX':
        return this.tasks.advance(await this.readiness.untilRunning(task, signal), 'PREPARING_REPOSITORY');
      default:
        return this.inSandbox.next(task, signal);
    }
  }

  /** Nobody waits for a sandbox in which nothing could begin. */
  private async judgeSettings({ userId, request }: StartTask): Promise<void> {
    // What is in a given sandbox is known later; it is judged again then.
    const dialect =
      request.sandbox_id === null
        ? agentDialect(this.specs.find(request.sandbox_spec_id ?? this.specs.default.id))
        : 'stock';
    const problem = await this.requests.problem(userId, request, dialect);
    if (problem !== null) {
      throw new StartFailure(problem);
    }
  }
}
