import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseNotificationsModule } from '../database/database-notifications.module.js';
import { LeasedWorkModule } from '../database/leased-work.module.js';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { HealthModule } from '../health/health.module.js';
import { OutboundWebhooksModule } from '../outbound-webhooks/outbound-webhooks.module.js';
import { SuggestedTasksModule } from '../suggested-tasks/suggested-tasks.module.js';
import { AppConversationsModule } from '../v1/app-conversations/app-conversations.module.js';
import { Automation, AutomationRepository } from './definitions/automation.repository.js';
import { AutomationsController } from './definitions/automations.controller.js';
import { AutomationsService } from './definitions/automations.service.js';
import { ScheduleWorker } from './definitions/schedule.worker.js';
import {
  AutomationEvent,
  AutomationEventRepository,
  KnownBody,
} from './events/automation-event.repository.js';
import { AutomationEventsController } from './events/automation-events.controller.js';
import { AutomationEventsService } from './events/automation-events.service.js';
import { EventActors } from './events/event-actors.service.js';
import { AutomationWebhook, AutomationWebhookRepository } from './events/automation-webhook.repository.js';
import { AutomationWebhooksController } from './events/automation-webhooks.controller.js';
import { AutomationRun } from './runs/automation-run.entity.js';
import { AutomationRunRepository } from './runs/automation-run.repository.js';
import { AutomationRunWorker } from './runs/automation-run.worker.js';
import { RunSettler } from './runs/run-settler.js';
import { NotOfferedController, ServiceInfoController } from './service-info.controller.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([Automation, AutomationRun, AutomationWebhook, AutomationEvent, KnownBody]),
    AppConversationsModule,
    DatabaseNotificationsModule,
    GitProvidersModule,
    HealthModule,
    LeasedWorkModule,
    OutboundWebhooksModule,
    SuggestedTasksModule,
  ],
  // Routes with a fixed path go before `v1/:id`.
  controllers: [
    ServiceInfoController,
    AutomationWebhooksController,
    AutomationEventsController,
    NotOfferedController,
    AutomationsController,
  ],
  providers: [
    AutomationEventRepository,
    AutomationEventsService,
    AutomationWebhookRepository,
    AutomationRepository,
    AutomationRunRepository,
    AutomationRunWorker,
    AutomationsService,
    EventActors,
    RunSettler,
    ScheduleWorker,
  ],
})
export class AutomationsModule {}
