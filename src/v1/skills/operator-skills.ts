import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';

/** Knowledge that the operator has for all agents. */
export interface OperatorSkill {
  name: string;
  description: string | null;
  content: string;
  /** Words of a message that it is given with; none: it is always part of the prompt. */
  triggers: string[];
}

/** The skills in `SKILLS_DIR`, by name, as they were when the service started. */
@Injectable()
export class OperatorSkills implements OnModuleInit {
  private skills: readonly OperatorSkill[] = [];

  constructor(private readonly config: AppConfig) {}

  /** @throws ConfigError for a folder that is not readable, and a file that is no skill */
  async onModuleInit(): Promise<void> {
    const { skillsDir: folder } = this.config.agent;
    if (folder !== null) {
      // Imported only where there are skills: the parser takes long to load.
      const { readOperatorSkills } = await import('./operator-skills.file.js');
      this.skills = await readOperatorSkills(folder);
    }
  }

  all(): readonly OperatorSkill[] {
    return this.skills;
  }
}
