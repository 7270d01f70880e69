import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';

/** Knowledge that the operator gives to all agents. */
export interface OperatorSkill {
  name: string;
  description: string | null;
  content: string;
  /**
   * The agent gets the skill with a message that contains one of these words. Empty: the skill is always in the prompt.
   */
  triggers: string[];
}

/** The skills in `SKILLS_DIR`, by name, as they were when the service started. */
@Injectable()
export class OperatorSkills implements OnModuleInit {
  private skills: readonly OperatorSkill[] = [];

  constructor(private readonly config: AppConfig) {}

  /** @throws ConfigError for a folder that cannot be read, or a file that is not a valid skill */
  async onModuleInit(): Promise<void> {
    const { skillsDir: folder } = this.config.agent;
    if (folder !== null) {
      // Imported only when a folder is set, because the parser is slow to load.
      const { readOperatorSkills } = await import('./operator-skills.file.js');
      this.skills = await readOperatorSkills(folder);
    }
  }

  all(): readonly OperatorSkill[] {
    return this.skills;
  }
}
