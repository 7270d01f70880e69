@Module({
  providers: [DatabaseNotifications],
  exports: [DatabaseNotifications],
})
export class DatabaseNotificationsModule {}
