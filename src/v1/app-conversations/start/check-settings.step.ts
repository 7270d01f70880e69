import { Injectable } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { AgentRequestBuilder } from '../agent-request/agent-request.builder.js';
import { agentDialect } from '../agent-request/agent-settings.js';
import type { StartTask } from '../start-task.entity.js';
import { StartFailure } from './start-failure.js';

/** WORKING: ends a start that could not begin with its user's settings before it waits for a sandbox. */
@Injectable()
export class CheckSettingsStep {
  constructor(
    private readonly requests: AgentRequestBuilder,
    private readonly specs: SandboxSpecs,
  ) {}

  /** @throws StartFailure */
  async run({ userId, request }: StartTask): Promise<void> {
    // What runs in an existing sandbox is known later; the settings are checked again then.
    const dialect =
      request.sandbox_id === null
        ? agentDialect(this.specs.find(request.sandbox_spec_id ?? this.specs.default.id))
        : 'stock';
    const problem = await this.requests.problem(userId, request, dialect);
    if (problem !== null) {
      throw new StartFailure('settings', problem);
    }
  }
}
