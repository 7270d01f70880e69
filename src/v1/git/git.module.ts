import { Module } from '@nestjs/common';
import { SuggestedTasksModule } from '../../suggested-tasks/suggested-tasks.module.js';
import { SuggestedTaskPagesController } from './suggested-task-pages.controller.js';

/** The V1 routes about git: `/api/v1/git/…`. */
@Module({ imports: [SuggestedTasksModule], controllers: [SuggestedTaskPagesController] })
export class GitModule {}
