import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../../audit/audit.module.js';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { UsageModule } from '../../usage/usage.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { EventsModule } from '../events/events.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { EgressPermit, EgressPermitRepository } from './egress-permit.repository.js';
import { EgressPermitsService } from './egress-permits.service.js';
import { EgressPoliciesService } from './egress-policies.service.js';
import { EgressProxyKeys } from './egress-proxy.keys.js';
import { EgressProxyController } from './egress-proxy.controller.js';
import { EgressProxyProcess } from './egress-proxy.process.js';
import { EgressRequest, EgressRequestRepository } from './egress-request.repository.js';
import { EgressController } from './egress.controller.js';
import { EgressMeter, EgressMeterRepository } from './egress-meter.repository.js';
import { ModelCallsService } from './model-calls.service.js';
import { OpenHosts } from './open-hosts.js';
import { SandboxLayers } from './sandbox-layers.js';

/** What sandboxes may reach where there are rules. */
@Module({
  imports: [
    TypeOrmModule.forFeature([EgressMeter, EgressPermit, EgressRequest]),
    AppConversationsModule,
    AuditModule,
    EventsModule,
    GitProvidersModule,
    SandboxSpecsModule,
    SandboxesModule,
    SettingsModule,
    UsageModule,
  ],
  controllers: [EgressController, EgressProxyController],
  providers: [
    EgressMeterRepository,
    EgressPermitRepository,
    EgressPermitsService,
    EgressPoliciesService,
    EgressProxyKeys,
    EgressProxyProcess,
    EgressRequestRepository,
    ModelCallsService,
    OpenHosts,
    SandboxLayers,
  ],
})
export class EgressModule {}
