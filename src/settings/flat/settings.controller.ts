import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { SettingsDto, toSettingsStoredDto, type SettingsStoredDto } from './settings.dto.js';
import { LoadSettingsOperation, StoreSettingsOperation } from './settings.openapi.js';
import { SettingsService } from './settings.service.js';
import { type StoredSettingsDto, toStoredSettingsDto } from './stored-settings.dto.js';

@ApiTags('Settings')
@ApiSecurity('APIKeyHeader')
@Controller('api/settings')
export class SettingsController {
  constructor(private readonly settings: SettingsService) {}

  @Post()
  @HttpCode(200)
  @StoreSettingsOperation()
  async store(@CurrentUser() user: AuthUser, @Body() body: SettingsDto): Promise<SettingsStoredDto> {
    const warnings = await this.settings.store(user.id, body);
    return toSettingsStoredDto(warnings, body.secrets_store?.custom_secrets);
  }

  @Get()
  @LoadSettingsOperation()
  async find(@CurrentUser() user: AuthUser): Promise<StoredSettingsDto> {
    return toStoredSettingsDto(await this.settings.find(user.id));
  }
}
