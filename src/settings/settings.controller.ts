import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { AuthUser } from '../auth/auth-user.js';
import { CurrentUser } from '../auth/current-user.decorator.js';
import { SettingsDto } from './dto/settings.dto.js';
import { toSettingsStoredDto, type SettingsStoredDto } from './dto/settings-stored.dto.js';
import type { StoredSettingsDto } from './dto/stored-settings.dto.js';
import { LoadSettingsOperation, StoreSettingsOperation } from './settings.operations.js';
import { toStoredSettingsDto } from './settings-row.js';
import { SettingsService } from './settings.service.js';

@ApiTags('Settings')
@ApiSecurity('APIKeyHeader')
@Controller('api/settings')
export class SettingsController {
  constructor(private readonly settings: SettingsService) {}

  @Post()
  @HttpCode(200)
  @StoreSettingsOperation()
  async store(@CurrentUser() user: AuthUser, @Body() body: SettingsDto): Promise<SettingsStoredDto> {
    return toSettingsStoredDto(await this.settings.store(user.id, body));
  }

  @Get()
  @LoadSettingsOperation()
  async find(@CurrentUser() user: AuthUser): Promise<StoredSettingsDto> {
    return toStoredSettingsDto(await this.settings.find(user.id));
  }
}
