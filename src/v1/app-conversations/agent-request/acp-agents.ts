import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AppConfig } from '../../../config/app-config.js';
import type { AcpAgent } from './acp-agents.file.js';
import { OWN_AGENT } from './agent-settings.js';

/** Prefix of ACP agent names in settings and requests. */
const PREFIX = 'acp:';

/** The ACP agents that users may choose, from the operator's list. */
@Injectable()
export class AcpAgents implements OnModuleInit {
  private agents = new Map<string, AcpAgent>();

  constructor(private readonly config: AppConfig) {}

  /** @throws ConfigError for an invalid list */
  async onModuleInit(): Promise<void> {
    const { acpAgentsFile: file } = this.config.agent;
    if (file !== null) {
      // Imported only where there is a list: the parsers take long to load.
      const { readAcpAgents } = await import('./acp-agents.file.js');
      this.agents = await readAcpAgents(file);
    }
  }

  /** As settings and requests name them. */
  get names(): string[] {
    return [...this.agents.keys()].map((name) => `${PREFIX}${name}`);
  }

  /** Whether settings and requests may name this agent, our own included. */
  has(name: string): boolean {
    return name === OWN_AGENT || this.find(name) !== null;
  }

  /**
   * The agent of that name in settings or a request; null for our own, and for none.
   *
   * @param name null: our own
   */
  find(name: string | null): AcpAgent | null {
    return name?.startsWith(PREFIX) ? (this.agents.get(name.slice(PREFIX.length)) ?? null) : null;
  }
}
