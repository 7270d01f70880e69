import { Module } from '@nestjs/common';
import { McpConfigModule } from '../../mcp-config/mcp-config.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { NestedSettingsController } from './nested-settings.controller.js';
import { NestedSettingsService } from './nested-settings.service.js';
import { OrganizationProfilesController, ProfilesController } from './profiles.controller.js';
import { ProfilesService } from './profiles.service.js';

/** The settings in nested form, and stored models. */
@Module({
  imports: [SettingsModule, McpConfigModule],
  controllers: [ProfilesController, OrganizationProfilesController, NestedSettingsController],
  providers: [NestedSettingsService, ProfilesService],
  exports: [NestedSettingsService],
})
export class NestedSettingsModule {}
