import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { EgressPoliciesService } from './egress-policies.service.js';
import { EgressProxyController } from './egress-proxy.controller.js';
import { EgressProxyProcess } from './egress-proxy.process.js';
import { EgressRequest, EgressRequestRepository } from './egress-request.repository.js';
import { EgressController } from './egress.controller.js';
import { OpenHosts } from './open-hosts.js';

/** What sandboxes may reach where an operator has rules. */
@Module({
  imports: [
    TypeOrmModule.forFeature([EgressRequest]),
    AppConversationsModule,
    GitProvidersModule,
    SandboxSpecsModule,
    SandboxesModule,
    SettingsModule,
  ],
  controllers: [EgressController, EgressProxyController],
  providers: [EgressPoliciesService, EgressProxyProcess, EgressRequestRepository, OpenHosts],
})
export class EgressModule {}
