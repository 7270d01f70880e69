import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { AppConversationsModule } from '../v1/app-conversations/app-conversations.module.js';
import { SettingsModule } from '../settings/settings.module.js';
import { ConversationInfosController } from './conversations.controller.js';
import { OptionsController } from './options.controller.js';
import { UserRepositoriesController } from './repositories.controller.js';

/** Routes of OpenHands' web application up to 0.62, over the services of V1. Stores nothing. */
@Module({
  imports: [AppConversationsModule, GitProvidersModule, SettingsModule],
  controllers: [OptionsController, ConversationInfosController, UserRepositoriesController],
})
export class V0Module {}
