import { Text } from '../../common/validation/text.decorator.js';

/** Path of `/api/v1/api-keys/{id}`. */
export class ApiKeyIdDto {
  @Text({ required: true, description: 'Id of the key: its first part, after `slw_`.', example: '4nKxq0Zt' })
  id: string;
}
