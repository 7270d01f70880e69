import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { UserRepository } from '../auth/user.repository.js';
import { AppConfig } from '../config/app-config.js';
import { LeasedWorkModule } from '../database/leased-work.module.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { UserAddresses } from './user-addresses.js';
import { PushKeys } from './push/push-keys.js';
import { PushMessage, PushMessageRepository } from './push/push-message.repository.js';
import { PushSubscription, PushSubscriptionRepository } from './push/push-subscription.repository.js';
import { PushController } from './push/push.controller.js';
import { PushWorker } from './push/push.worker.js';
import { WebhookDelivery, WebhookDeliveryRepository } from './webhook-delivery.repository.js';
import { WebhookDeliveryWorker, WebhookMetrics } from './webhook-delivery.worker.js';
import { WebhookEndpoint, WebhookEndpointRepository } from './webhook-endpoint.repository.js';
import { WebhookEndpointsController } from './webhook-endpoints.controller.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';
import { createWebhookHttpClient, WebhookHttpClient, OutboundWebhookSender } from './webhook.sender.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([WebhookEndpoint, WebhookDelivery, PushSubscription, PushMessage]),
    LeasedWorkModule,
    ObservabilityModule,
  ],
  controllers: [WebhookEndpointsController, PushController],
  providers: [
    { provide: WebhookHttpClient, inject: [AppConfig], useFactory: createWebhookHttpClient },
    WebhookDeliveryRepository,
    WebhookDeliveryWorker,
    WebhookEndpointRepository,
    WebhookEndpointsService,
    WebhookMetrics,
    OutboundWebhookSender,
    UserAddresses,
    PushKeys,
    PushMessageRepository,
    PushSubscriptionRepository,
    PushWorker,
    UserRepository,
  ],
  exports: [WebhookDeliveryRepository],
})
export class OutboundWebhooksModule {}
