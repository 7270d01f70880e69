import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AppConfig } from '../config/app-config.js';
import { LeasedWorkModule } from '../database/leased-rows/leased-worker.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { WebhookDelivery, WebhookDeliveryRepository } from './webhook-delivery.repository.js';
import { WebhookDeliveryWorker, WebhookMetrics } from './webhook-delivery.worker.js';
import { WebhookEndpoint, WebhookEndpointRepository } from './webhook-endpoint.repository.js';
import { WebhookEndpointsController } from './webhook-endpoints.controller.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';
import { createWebhookHttpClient, WebhookHttpClient, OutboundWebhookSender } from './webhook.sender.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([WebhookEndpoint, WebhookDelivery]),
    LeasedWorkModule,
    ObservabilityModule,
  ],
  controllers: [WebhookEndpointsController],
  providers: [
    { provide: WebhookHttpClient, inject: [AppConfig], useFactory: createWebhookHttpClient },
    WebhookDeliveryRepository,
    WebhookDeliveryWorker,
    WebhookEndpointRepository,
    WebhookEndpointsService,
    WebhookMetrics,
    OutboundWebhookSender,
  ],
  exports: [WebhookDeliveryRepository],
})
export class OutboundWebhooksModule {}
