import { Injectable } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { agentDialect } from '../agent-request/agent-dialects.js';
import type { AgentConfiguration } from '../agent-request/agent-inputs.reader.js';
import type { CheckedConfiguration } from '../agent-request/agent-request.builder.js';
import { ConversationRepository } from '../conversation.repository.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { isForeign, type WorkPlace } from '../work-places/work-place.js';
import { AwaitSandboxStep } from './await-sandbox.step.js';
import { BeginConversationStep } from './begin-conversation.step.js';
import { PrepareRepositoryStep, type StartContext } from './prepare-repository.step.js';
import { SetUpStep } from './set-up.step.js';
import { StartFailure } from './start-failure.js';

/** Which step a start makes in which status, and what its task keeps of it. */
@Injectable()
export class StartSteps {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly running: RunningSandboxQueries,
    private readonly specs: SandboxSpecs,
    private readonly awaitSandbox: AwaitSandboxStep,
    private readonly prepareRepository: PrepareRepositoryStep,
    private readonly setUp: SetUpStep,
    private readonly beginConversation: BeginConversationStep,
  ) {}

  /** Returns the task in its next status. @throws StartFailure, StartSuperseded, or what may pass */
  async run(
    task: StartTask,
    { configuration, problem }: CheckedConfiguration,
    signal: AbortSignal,
  ): Promise<StartTask> {
    switch (task.status) {
      case 'WORKING':
        // Before the start waits for a sandbox.
        if (problem !== null) {
          throw new StartFailure('settings', problem);
        }
        return this.tasks.advance(task, 'WAITING_FOR_SANDBOX', { detail: task.detail });
      case 'WAITING_FOR_SANDBOX':
        return this.tasks.advance(await this.awaitSandbox.run(task, signal), 'PREPARING_REPOSITORY');
      default:
        return this.runStepInSandbox(task, configuration, signal);
    }
  }

  /** Waits for a sandbox that was stopped meanwhile. */
  private async context(first: StartTask, signal: AbortSignal): Promise<StartContext> {
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

  private async runStepInSandbox(
    given: StartTask,
    configuration: AgentConfiguration,
    signal: AbortSignal,
  ): Promise<StartTask> {
    const { selected_repository: repository, work_place: workPlace } = given.request;
    const hasOwnScripts = repository !== null && !isForeign(workPlace);
    // Without scripts the sandbox does nothing, and need not be looked up.
    if (!hasOwnScripts && given.status === 'RUNNING_SETUP_SCRIPT') {
      return this.tasks.advance(given, 'SETTING_UP_GIT_HOOKS');
    }
    if (!hasOwnScripts && given.status === 'SETTING_UP_GIT_HOOKS') {
      return this.tasks.advance(given, 'STARTING_CONVERSATION');
    }
    const context = await this.context(given, signal);
    const { task } = context;
    switch (task.status) {
      case 'PREPARING_REPOSITORY': {
        const prepared = await this.prepareRepository.run(context, configuration, signal);
        const { workingDir, notices, place } = prepared;
        const notes = [...new Set([...task.notes, ...notices])];
        const placed = place === undefined ? task : await this.place(task, place);
        return this.tasks.advance(placed, 'RUNNING_SETUP_SCRIPT', { workingDir, notes });
      }
      case 'RUNNING_SETUP_SCRIPT':
        await this.setUp.runScript(context, signal);
        return this.tasks.advance(task, 'SETTING_UP_GIT_HOOKS');
      case 'SETTING_UP_GIT_HOOKS':
        await this.setUp.installHook(context, signal);
        return this.tasks.advance(task, 'STARTING_CONVERSATION');
      case 'STARTING_CONVERSATION':
        return this.becomeReady(context, await this.beginConversation.run(context, configuration));
      default:
        throw new Error(`a start in status ${task.status} has no step in its sandbox`);
    }
  }

  private async place(task: StartTask, place: WorkPlace | null): Promise<StartTask> {
    if ((task.request.work_place ?? null) === null && place === null) {
      return task;
    }
    await this.tasks.amend(task.id, { work_place: place });
    return Object.assign({}, task, { request: { ...task.request, work_place: place } });
  }

  /** Clients may use the conversation: the agent server has it and its credentials. */
  private async becomeReady({ sandbox }: StartContext, task: StartTask): Promise<StartTask> {
    return this.tasks.transaction(async (manager) => {
      await this.conversations.setGeneration(task.appConversationId, sandbox.generation, manager);
      return this.tasks.advance(task, 'READY', {}, manager);
    });
  }
}
