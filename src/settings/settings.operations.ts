import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { SettingsStoredDto } from './dto/settings-stored.dto.js';
import { StoredSettingsDto } from './dto/stored-settings.dto.js';

/** Documents `POST /api/settings`. */
export function StoreSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      summary: 'Store settings',
      description:
        'Merges the given members into what is stored: all of the request, or nothing. Members left out keep their values; null clears a member unless its description says otherwise.',
    }),
    ApiOkResponse({ type: SettingsStoredDto, description: 'Settings stored successfully' }),
    ApiProblems(
      {
        status: 401,
        description: 'No valid API key, or (code invalid_git_token) a token that its provider rejects',
      },
      413,
      415,
      422,
    ),
  );
}

/** Documents `GET /api/settings`. */
export function LoadSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      summary: 'Show settings',
      description: 'Keys, tokens and secrets are never shown, only that they are set.',
    }),
    ApiOkResponse({ type: StoredSettingsDto, description: 'The settings' }),
    ApiProblems({ status: 404, detail: 'Settings not found', description: 'Nothing was stored yet' }),
  );
}
