import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';

/** Knowledge that the operator gives to all agents. */
export interface OperatorSkill {
  name: string;
  description: string | null;
  content: string;
  /** A message with one of these words gives the agent the skill; without words, the skill is always in the prompt. */
  triggers: string[];
}

/** The skills in `SKILLS_DIR` at the start of the service, by name. */
@Injectable()
export class OperatorSkills implements OnModuleInit {
  private skills: readonly OperatorSkill[] = [];

  constructor(private readonly config: AppConfig) {}

  async onModuleInit(): Promise<void> {
    const { skillsDir: folder } = this.config.agent;
    if (folder !== null) {
      // The parser is slow to load.
      const { readOperatorSkills } = await import('./operator-skills.file.js');
      this.skills = await readOperatorSkills(folder);
    }
  }

  all(): readonly OperatorSkill[] {
    return this.skills;
  }
}
