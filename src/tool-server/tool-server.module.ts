import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { HealthModule } from '../health/health.module.js';
import { SuggestedTasksModule } from '../suggested-tasks/suggested-tasks.module.js';
import { AppConversationsModule } from '../v1/app-conversations/app-conversations.module.js';
import { EventsModule } from '../v1/events/events.module.js';
import { PullRequestsModule } from '../v1/pull-requests/pull-requests.module.js';
import { ConversationProgress } from './conversation-progress.js';
import { ToolServerService } from './tool-server.service.js';
import { ToolServerController } from './tool-server.controller.js';

@Module({
  imports: [
    AuthModule,
    AppConversationsModule,
    EventsModule,
    HealthModule,
    PullRequestsModule,
    SuggestedTasksModule,
  ],
  controllers: [ToolServerController],
  providers: [ConversationProgress, ToolServerService],
})
export class ToolServerModule {}
