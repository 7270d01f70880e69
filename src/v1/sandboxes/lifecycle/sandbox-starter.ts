import { Injectable } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { traced } from '../../../common/tracing/tracing.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import {
  SandboxBackend,
  SandboxBackendError,
  SandboxBackendUnavailableError,
  type SandboxFacts,
  type SandboxLaunch,
} from '../backends/sandbox-backend.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { newSessionKey, sessionKeyBinding, sessionKeyHash } from '../session-key.js';
import { AnswerWaiter, StartDeadline } from './answer-waiter.js';
import { BackendReadiness } from './backend-readiness.js';
import { FILES_GONE } from './exit-diagnosis.js';
import { LaunchPlanner } from './launch-plan.js';

/** A start that succeeded. */
interface StartedSandbox {
  address: string;
  /** Where the ports of what agents start are reached, by name. */
  ports: SandboxFacts['ports'];
  /** What of the specification and of the user's settings has no effect; null: nothing. */
  detail: string | null;
}

/** How far a start has come. */
export interface StartProgress {
  /** A line for people about long work. */
  detail: string | null;
  /** Epoch milliseconds; long work moves it. */
  deadlineAt: number;
}

/** Aborts a step that need not go on; nothing has failed. */
export class StepInterrupted extends Error {}

/** Starts the program of a sandbox under a new session key, and waits until its agent server answers. */
@Injectable()
export class SandboxStarter {
  constructor(
    private readonly readiness: BackendReadiness,
    private readonly backend: SandboxBackend,
    private readonly client: AgentServerClient,
    private readonly answers: AnswerWaiter,
    private readonly planner: LaunchPlanner,
    private readonly clock: Clock,
    private readonly sandboxes: SandboxRepository,
    private readonly cipher: SecretCipher,
  ) {}

  /**
   * Starts or resumes the sandbox. A first start that an earlier worker began before it died is only waited for.
   *
   * @param signal aborts the start; what has begun is left to the next worker of the row
   * @throws SandboxBackendError with the cause when it cannot be started; StepInterrupted when somebody else decides now
   */
  async start(
    sandbox: Sandbox,
    signal: AbortSignal,
    onProgress: (progress: StartProgress) => void,
  ): Promise<StartedSandbox> {
    const { launch, notes, startTimeoutSeconds } = this.planner.plan(sandbox);
    const shortfalls: string[] = [];
    const deadline = new StartDeadline(this.clock, startTimeoutSeconds, signal);
    try {
      await this.readiness.ready();
      const watched: SandboxLaunch = {
        ...launch,
        onProgress: (detail) => onProgress({ detail, deadlineAt: deadline.extend() }),
        onShortfall: (sentence) => shortfalls.push(sentence),
      };
      const begun = (): void => onProgress({ detail: null, deadlineAt: deadline.extend() });
      const sessionKey = await traced(
        () => ({ name: 'launch sandbox program' }),
        () => this.launch(sandbox, watched, deadline.signal, begun),
      );
      deadline.extend();
      const current = { id: launch.id, sessionKey };
      const answering = await traced(
        () => ({ name: 'wait for agent server' }),
        () => this.answers.untilAnswering(current, deadline),
      );
      return { ...answering, detail: [...notes, ...shortfalls].join(' ') || null };
    } catch (error) {
      // A backend that was aborted may throw an error of its own; the cause is the deadline.
      signal.throwIfAborted();
      if (error instanceof SandboxBackendUnavailableError) {
        throw this.whileUnavailable(sandbox, error, onProgress);
      }
      throw deadline.isOver && !(error instanceof SandboxBackendError) ? deadline.signal.reason : error;
    } finally {
      deadline.close();
    }
  }

  /** The start goes on when the backend can be asked again, unless that takes as long as a start may. */
  private whileUnavailable(
    { deadlineAt }: Sandbox,
    error: SandboxBackendUnavailableError,
    onProgress: (progress: StartProgress) => void,
  ): Error {
    if (deadlineAt === null || this.clock.now() >= deadlineAt.getTime()) {
      return new SandboxBackendError(error.message, { cause: error });
    }
    onProgress({ detail: error.message, deadlineAt: deadlineAt.getTime() });
    return error;
  }

  /**
   * @param begun called once the backend has answered: until then the deadline of the row counts
   * @returns the session key that the program has
   */
  private async launch(
    sandbox: Sandbox,
    launch: SandboxLaunch,
    signal: AbortSignal,
    begun: () => void,
  ): Promise<string> {
    const { id, generation } = sandbox;
    const { state, address } = await this.backend.inspect(id);
    begun();
    if (state === 'missing' && generation > 0) {
      throw new SandboxBackendError(FILES_GONE);
    }
    if (state !== 'stopped' && generation === 0) {
      // A worker that died since may have given it its key.
      if (address === null || !(await this.client.isAlive(address))) {
        await this.backend.start(launch, signal);
      }
      return launch.sessionKey;
    }
    // After a resume that overtook its pause, the earlier program still runs, with the earlier key.
    await this.backend.pause(id);
    const sessionKey = await this.renewKey(sandbox);
    await this.backend.resume({ ...launch, sessionKey }, signal);
    return sessionKey;
  }

  /** Whoever has learned the key of an earlier start can do nothing with it. The row has the new one before the program. */
  private async renewKey({ id, leaseOwner }: Sandbox): Promise<string> {
    const key = newSessionKey();
    const renewed = await this.sandboxes.update(
      id,
      {
        sessionKey: this.cipher.encrypt(key, sessionKeyBinding(id)),
        sessionKeyHash: sessionKeyHash(key),
      },
      { status: 'STARTING', leaseOwner: leaseOwner ?? '' },
    );
    if (!renewed) {
      throw new StepInterrupted('the sandbox has another status or another worker by now');
    }
    return key;
  }
}
