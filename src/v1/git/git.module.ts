import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { SuggestedTasksModule } from '../../suggested-tasks/suggested-tasks.module.js';
import { RepositoryListsController, SuggestedTaskPagesController } from './repository-lists.controller.js';

@Module({
  imports: [GitProvidersModule, SuggestedTasksModule],
  controllers: [SuggestedTaskPagesController, RepositoryListsController],
})
export class GitModule {}
