import { Module } from '@nestjs/common';
import { OperatorSkills } from './operator-skills.js';
import { SkillsController } from './skills.controller.js';

@Module({
  controllers: [SkillsController],
  providers: [OperatorSkills],
  exports: [OperatorSkills],
})
export class SkillsModule {}
