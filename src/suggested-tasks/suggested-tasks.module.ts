import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { SuggestedTasksController } from './suggested-tasks.controller.js';
import { SuggestedTasksService } from './suggested-tasks.service.js';
import { WorkReader } from './work.reader.js';

@Module({
  imports: [GitProvidersModule],
  controllers: [SuggestedTasksController],
  providers: [SuggestedTasksService, WorkReader],
  exports: [SuggestedTasksService],
})
export class SuggestedTasksModule {}
