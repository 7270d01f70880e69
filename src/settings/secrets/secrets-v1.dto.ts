import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { PageOf, PageQuery } from '../../common/pagination/page.dto.js';
import type { Page } from '../../common/pagination/page.js';
import { Text } from '../../common/validation/text-fields.js';
import type { SecretDescription } from './custom-secret.repository.js';
import { CustomSecretName, SecretDescriptionDto, SecretWarningProperty } from './secrets.dto.js';

export class SecretSearchDto extends PageQuery('Most secrets of a page.') {
  @Text('Part of the name; upper and lower case do not matter.', { example: 'TOKEN' })
  name__contains?: string;
}

export class SecretIdDto {
  @CustomSecretName('Name of the secret.') secret_id: string;
}

@ApiSchema({ name: 'CustomSecretWithoutValue' })
class SecretWithoutValueDto extends SecretDescriptionDto {}

/** Response of `GET /api/v1/secrets/search`; it never contains values. */
@ApiSchema({ name: 'CustomSecretPage' })
export class SecretPageDto extends PageOf(SecretWithoutValueDto) {}

export function toSecretPageDto({ items, nextPageId }: Page<SecretDescription>): SecretPageDto {
  return { items: items.map(({ name, description }) => ({ name, description })), next_page_id: nextPageId };
}

export class EditResponseDto {
  @ApiProperty({ description: 'What was done.', example: 'Secret created successfully' }) message: string;
  @SecretWarningProperty() warning?: string;
}
