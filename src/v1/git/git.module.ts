import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { SuggestedTasksModule } from '../../suggested-tasks/suggested-tasks.module.js';
import { RepositoryListsController } from './repository-lists.controller.js';
import { SuggestedTaskPagesController } from './suggested-task-pages.controller.js';

@Module({
  imports: [GitProvidersModule, SuggestedTasksModule],
  controllers: [SuggestedTaskPagesController, RepositoryListsController],
})
export class GitModule {}
