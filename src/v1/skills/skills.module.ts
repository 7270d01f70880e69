import { Module } from '@nestjs/common';
import { OperatorSkills } from './operator-skills.js';
import { SkillsController } from './skills.controller.js';

/** Skills that every agent has. */
@Module({
  controllers: [SkillsController],
  providers: [OperatorSkills],
  exports: [OperatorSkills],
})
export class SkillsModule {}
